package client

import "time"

// SetAttemptTimeout changes the timeout of a client that is in use.
func (c *Client) SetAttemptTimeout(d time.Duration) { c.attemptTimeout = d }
