package attacks

func red() category { return category{name: "RED"} }
