package main

import "belfry/pkg/app/plan"

type asyncapiCmd struct{ described }

// Run writes the document of GET /asyncapi.json.
func (c *asyncapiCmd) Run(s streams) error { return c.describe(plan.AsyncAPI, s) }
