package attacks

func ipx() category { return category{name: "IPX"} }
