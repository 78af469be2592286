package config

import "testing"

func TestLimitsHaveDefaultsAndCanBeTurnedOff(t *testing.T) {
	c := mustParse(t, ``)
	for name, n := range map[string]int{
		"address.reads": c.Limits.Address.Reads, "address.lists": c.Limits.Address.Lists,
		"address.writes":    c.Limits.Address.Writes,
		"address.listBytes": c.Limits.Address.ListBytes, "address.uploadBytes": c.Limits.Address.UploadBytes,
		"user.reads": c.Limits.User.Reads, "user.lists": c.Limits.User.Lists, "user.writes": c.Limits.User.Writes,
		"user.listBytes": c.Limits.User.ListBytes, "user.uploadBytes": c.Limits.User.UploadBytes,
		"bus.requests": c.Limits.Bus.Requests, "bus.bytes": c.Limits.Bus.Bytes,
	} {
		if n <= 0 {
			t.Errorf("limits.%s is off", name)
		}
	}
	c = mustParse(t,
		`limits: {address: {reads: 0, uploadBytes: 0}, user: {lists: 7, listBytes: 2MiB}, bus: {requests: 0, bytes: 0}}`)
	equal(t, "address.reads", c.Limits.Address.Reads, 0)
	equal(t, "address.uploadBytes", c.Limits.Address.UploadBytes, 0)
	equal(t, "user.lists", c.Limits.User.Lists, 7)
	equal(t, "user.listBytes", c.Limits.User.ListBytes, 2<<20)
	equal(t, "bus", c.Limits.Bus, BusRates{})
}

// In development nobody notices the limits; behind a proxy on the same machine they hold.
func TestThisMachineIsLimitedUnlessBaseURLIsLocal(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, `listen: ":8080"`: false, `baseURL: "http://localhost:3000"`: false,
		`baseURL: "http://[::1]:8080"`:         false,
		`baseURL: "https://books.example.com"`: true, `listen: "192.0.2.1:8080"`: true,
		`{baseURL: "https://books.example.com", limits: {loopback: false}}`: false, `limits: {loopback: true}`: true,
	} {
		equal(t, text, mustParse(t, text).Limits.Loopback, want)
	}
	c := mustParse(t, ``)
	if err := c.Override("192.0.2.1:80", ""); err != nil || !c.Limits.Loopback {
		t.Errorf("after --listen: %v, %v", c.Limits.Loopback, err)
	}
}

func TestLimitsThatCannotHoldAreProblems(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"a negative one", "limits: {address: {reads: -1}}", []string{
			"1:20: limits.address.reads: expected a whole number from 0 to 1000000, not \"-1\""}},
		{"less than a page", "limits: {user: {listBytes: 1KiB}}", []string{
			"1:17: limits.user.listBytes: expected a size from 1MiB, or 0 for no limit, not \"1KiB\""}},
		{"less than what is read at once", "limits: {user: {uploadBytes: 60KiB}}", []string{
			"1:17: limits.user.uploadBytes: expected a size from 64KiB, or 0 for no limit, not \"60KiB\""}},
		{"less than a message", "limits: {bus: {bytes: 1000}}", []string{
			"1:16: limits.bus.bytes: expected a size from 1MiB, or 0 for no limit, not \"1000\""}},
		{"unknown keys", "limits: {user: {read: 5}}", []string{
			"1:17: limits.user.read: unknown key; did you mean reads?"}},
	})
}
