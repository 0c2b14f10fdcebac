package attacks

func con() category { return category{name: "CON"} }
