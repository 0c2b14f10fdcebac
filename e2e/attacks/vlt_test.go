package attacks

func vlt() category { return category{name: "VLT"} }
