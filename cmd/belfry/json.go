package main

import (
	"encoding/json"
	"io"
)

// writeJSONLines writes one JSON object a line.
func writeJSONLines[T any](w io.Writer, rows []T) error {
	e := json.NewEncoder(w)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
