// Package upgrade tests that belfry is replaced by another version of it: by the one that was released before, side by
// side with it, and back.
package upgrade

// Release is the commit of the last version that was released. Whoever releases the next one sets it, and makes the
// data of testdata with it: docs/testing.md.
const Release = "b65fcf379218c424fc279fe80edb945684cad99f"
