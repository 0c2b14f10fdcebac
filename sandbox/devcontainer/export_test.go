package devcontainer

import (
	"context"
	"encoding/json"
)

// Configuration returns the properties of a configuration after the replacement of variables, as JSON.
func Configuration(in Input) (configuration []byte, plan *Plan, err error) {
	c, err := compose(context.Background(), in)
	if err != nil {
		return nil, nil, err
	}
	configuration, err = json.Marshal(c.doc.root)
	return configuration, c.plan, err
}

// FieldsOf returns the fields of a mount.
var FieldsOf = fieldsOf
