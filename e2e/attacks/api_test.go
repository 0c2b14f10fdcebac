package attacks

func api() category { return category{name: "API"} }
