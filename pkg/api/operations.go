package api

import (
	"belfry/pkg/api/events"
	"belfry/pkg/api/files"
	"belfry/pkg/api/login"
	"belfry/pkg/api/objects"
	"belfry/pkg/api/system"
	"belfry/pkg/apimodel"
	"belfry/pkg/natsapi"
	"belfry/pkg/op"
	"belfry/pkg/store"
)

// Operations returns the operations of a contract for documents only: they can't run.
func Operations(k *apimodel.Contract) *op.Set { return operations(k, handlers{}) }

// handlers run the operations.
type handlers struct {
	stores    map[string]*store.Store
	objects   *objects.Resources
	login     *login.Handler
	files     map[string]*files.Handler // by the name of the service
	events    *events.Handler
	health    system.Health
	documents system.Documents
}

// operations adds the operations of each domain, in the order of the document.
func operations(k *apimodel.Contract, h handlers) *op.Set {
	set := op.NewSet(k)
	for _, add := range domains {
		add(set, h)
	}
	return set
}

// domains add the operations of each domain.
var domains = []func(*op.Set, handlers){
	func(set *op.Set, h handlers) { objects.Operations(set, h.objects) },
	func(set *op.Set, h handlers) { login.Operations(set, h.login) },
	func(set *op.Set, h handlers) {
		for _, f := range set.Contract.Files {
			files.Operations(set, f, h.files[f.Name])
		}
	},
	func(set *op.Set, h handlers) { events.Operations(set, h.events) },
	func(set *op.Set, h handlers) { system.Operations(set, h.health, h.documents) },
	func(set *op.Set, h handlers) { natsapi.Operations(set, h.stores) },
}

// Operations returns the operations that the Server serves, for documents.
func (s *Server) Operations() *op.Set { return s.set }
