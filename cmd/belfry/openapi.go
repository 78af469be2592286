package main

import (
	"belfry/config"
	"belfry/pkg/app"
)

type openapiCmd struct{ described }

// Run writes the document of GET /openapi.json.
func (c *openapiCmd) Run(s streams) error { return c.describe(app.OpenAPI, s) }

// described is the flags of commands that write a document.
type described struct {
	configuration
	Listen string `help:"Address of HTTP, instead of the configured one." env:"BELFRY_LISTEN" placeholder:"HOST:PORT"`
}

func (d described) describe(document func(*config.Config) ([]byte, error), s streams) error {
	loaded, err := d.load(d.Listen)
	if err != nil {
		return err
	}
	text, err := document(loaded)
	if err != nil {
		return err
	}
	_, err = s.out.Write(text)
	return err
}
