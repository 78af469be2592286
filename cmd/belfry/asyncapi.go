package main

import "belfry/pkg/app"

type asyncapiCmd struct{ described }

// Run writes what GET /asyncapi.json replies.
func (c *asyncapiCmd) Run(s streams) error { return c.describe(app.AsyncAPI, s) }
