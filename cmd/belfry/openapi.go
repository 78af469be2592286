package main

import (
	"belfry/config"
	"belfry/pkg/app/plan"
)

type openapiCmd struct {
	described
	Spec string `help:"Version of OpenAPI: 3.1, or 3.0 for code generators that do not take 3.1." enum:"3.1,3.0" default:"3.1"`
}

// Run writes the document of GET /openapi.json, or the same in OpenAPI 3.0.
func (c *openapiCmd) Run(s streams) error {
	if c.Spec == "3.0" {
		return c.describe(plan.OpenAPI30, s)
	}
	return c.describe(plan.OpenAPI, s)
}

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

type asyncapiCmd struct{ described }

// Run writes the document of GET /asyncapi.json.
func (c *asyncapiCmd) Run(s streams) error { return c.describe(plan.AsyncAPI, s) }
