package openapi

const eventsTag = "Events"

// events adds the stream of events for browsers.
func (d *document) events() {}
