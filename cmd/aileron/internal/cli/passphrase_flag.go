package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// PassphraseFlag adds the two flags that name a file with the vault's passphrase.
func PassphraseFlag(cmd *cobra.Command, file *string) {
	f := cmd.Flags()
	f.StringVar(file, "passphrase-file", "", "file that holds the vault's passphrase")
	f.Var((*DescriptorFile)(file), "passphrase-fd", "number of an open descriptor with the vault's passphrase")
}

// DescriptorFile is a flag that names a file by a descriptor that the process has inherited.
type DescriptorFile string

// String returns "": there is no default to show.
func (d *DescriptorFile) String() string { return "" }

// Type returns the word for the value in help.
func (d *DescriptorFile) Type() string { return "N" }

// Set takes the number of a descriptor.
func (d *DescriptorFile) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.New("it is not the number of a descriptor")
	}
	*d = DescriptorFile("/dev/fd/" + strconv.FormatUint(n, 10))
	return nil
}
