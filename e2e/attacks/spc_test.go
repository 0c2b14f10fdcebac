package attacks

func spc() category { return category{name: "SPC"} }
