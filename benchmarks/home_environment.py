"""A home with four tools whose arguments are words of short lists, for a very small model."""

from typing import Literal

Room = Literal["kitchen", "bedroom", "garage", "office", "bathroom", "hall", "cellar", "attic"]
Device = Literal["lamp", "heater", "fan", "radio", "oven", "kettle", "printer", "camera"]
Genre = Literal["jazz", "rock", "opera", "folk", "soul", "blues"]


class Home:
    """What can be done in a home; it keeps nothing."""

    def switch(self, device: Device, room: Room, state: Literal["on", "off"]) -> str:
        """Switches a device.

        Args:
            device: the device.
            room: where it is.
            state: what it is to be.
        """
        return state

    def temperature(self, room: Room, unit: Literal["celsius", "fahrenheit"]) -> int:
        """Measures the temperature.

        Args:
            room: where.
            unit: unit of the temperature.
        """
        celsius = 15 + sum(map(ord, room)) % 10
        return celsius if unit == "celsius" else round(celsius * 9 / 5 + 32)

    def music(self, genre: Genre, room: Room, volume: Literal[1, 2, 3, 4, 5]) -> str:
        """Plays music.

        Args:
            genre: what is played.
            room: where.
            volume: how loud.
        """
        return "playing"

    def timer(self, minutes: Literal[5, 10, 15, 20, 30, 45, 60], label: Device) -> int:
        """Starts a timer.

        Args:
            minutes: how long.
            label: what it is for.
        """
        return minutes
