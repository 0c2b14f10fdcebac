package attacks

func smg() category { return category{name: "SMG"} }
