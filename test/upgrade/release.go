// Package upgrade tests that belfry is replaced by another version of it: by the one that was released before, side by side with
// it, and back.
package upgrade

// Release is the commit of the last version that was released. Whoever releases the next one sets it, and makes the data
// of testdata with it: docs/testing.md.
const Release = "63138c90929ed66358c8beab9e8f87eec997779e"
