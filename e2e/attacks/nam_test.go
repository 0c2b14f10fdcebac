package attacks

func nam() category { return category{name: "NAM"} }
