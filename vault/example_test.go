package vault_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/vault"
)

func Example() {
	home, err := os.MkdirTemp("", "aileron-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)

	// A release calls Open without the option, which makes the example fast.
	v := vault.Open(filepath.Join(home, "vault"), vault.TestOnlyWorkFactor(10))
	if err := v.Init([]byte("correct horse battery")); err != nil {
		log.Fatal(err)
	}
	token, err := vault.NewSecret([]byte("tok-9f2c41aaXYZ\n"))
	if err != nil {
		log.Fatal(err)
	}
	binding := vault.Binding{
		Name: "bearer/tracker/work", Kind: "bearer", Connector: "github://acme/tracker", Identity: "work",
	}
	if err := v.Bind(binding, token); err != nil {
		log.Fatal(err)
	}

	credential, err := v.Credential("bearer/tracker/work")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(credential.Kind, credential.Secret) // a secret does not print
	fmt.Println(len(credential.Secret.Reveal()), "bytes")

	v.Lock()
	_, err = v.Credential("bearer/tracker/work")
	fmt.Println(err)
	// Output:
	// bearer [secret]
	// 15 bytes
	// the vault is locked
}
