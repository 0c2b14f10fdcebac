package attacks

func dos() category { return category{name: "DOS"} }
