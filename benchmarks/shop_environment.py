"""A shop whose tools feed each other: ids of one are arguments of the next."""


class Shop:
    """Customers, orders, products, suppliers and deliveries; all of it follows from the ids."""

    def find_customer(self, name: str) -> dict:
        """Finds a customer.

        Args:
            name: name of the customer.
        """
        return {"customer_id": 100 + sum(ord(letter) * 7 for letter in name) % 900}

    def list_orders(self, customer_id: int) -> dict:
        """Lists the orders of a customer.

        Args:
            customer_id: id of the customer.
        """
        return {"orders": [{"order_id": f"O{customer_id * 13 % 9973}"}]}

    def get_order(self, order_id: str) -> dict:
        """Shows an order.

        Args:
            order_id: id of the order.
        """
        number = int(order_id.removeprefix("O"))
        return {"product_id": 1 + number % 97, "quantity": 1 + number % 5}

    def get_product(self, product_id: int, currency: str = "EUR") -> dict:
        """Shows a product.

        Args:
            product_id: id of the product.
            currency: currency of the price.
        """
        return {"price": product_id * 3, "currency": currency, "supplier": {"id": product_id % 11}}

    def get_supplier(self, supplier_id: int) -> dict:
        """Shows a supplier.

        Args:
            supplier_id: id of the supplier.
        """
        return {"city": ("Accra", "Berlin", "Cairo", "Delhi")[supplier_id % 4]}

    def plan_delivery(self, city: str, quantity: int = 1) -> dict:
        """Plans a delivery.

        Args:
            city: where it starts.
            quantity: number of parcels.
        """
        return {"days": 1 + (len(city) + quantity) % 7}
