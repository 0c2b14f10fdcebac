// Command get is a client that needs nothing from its image: it prints the
// answer of each URL, as Go's net/http fetches it.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	// A machine with much else to do may need longer than Go's ten seconds.
	http.DefaultTransport.(*http.Transport).TLSHandshakeTimeout = 0
	code := 0
	for _, url := range os.Args[1:] {
		url = os.ExpandEnv(url)
		if err := get(url); err != nil {
			fmt.Fprintln(os.Stderr, "get:", err)
			code = 1
		}
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		fmt.Println("env", name)
	}
	os.Exit(code)
}

func get(url string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if api := os.Getenv("AILERON_API_URL"); api != "" && strings.HasPrefix(url, api) {
		req.Header.Set("Authorization", "Bearer "+os.Getenv("AILERON_TOKEN"))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	_, err = io.Copy(os.Stdout, res.Body)
	fmt.Println()
	return err
}
