"""The methods that come with this package, a YAML file each."""
