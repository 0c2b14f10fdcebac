package attacks

func env() category { return category{name: "ENV"} }
