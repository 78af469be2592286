// Package asyncapi writes the AsyncAPI 3 document of a configuration.
package asyncapi

import (
	"belfry/pkg/contract"
	"belfry/pkg/ordered"
)

// Document writes the document. It is the same for the same contract.
func Document(k *contract.Contract) ([]byte, error) {
	return ordered.Of("asyncapi", "3.0.0").Encode()
}
