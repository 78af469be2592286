package api

import (
	"belfry/pkg/api/events"
	"belfry/pkg/api/files"
	"belfry/pkg/api/login"
	"belfry/pkg/api/objects"
	"belfry/pkg/api/system"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/natsapi"
	"belfry/pkg/op"
	"belfry/pkg/store"
)

// Operations returns the operations of a contract for documents alone: none of them can run.
func Operations(k *model.Contract) *op.Set { return operations(k, handlers{}) }

// handlers are what runs operations.
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
func operations(k *model.Contract, h handlers) *op.Set {
	set := op.NewSet(k)
	objects.Operations(set, h.objects)
	login.Operations(set, h.login)
	for _, f := range k.Files {
		files.Operations(set, f, h.files[f.Name])
	}
	events.Operations(set, h.events)
	system.Operations(set, h.health, h.documents)
	natsapi.Operations(set, h.stores)
	return set
}

// Operations returns what the Server serves, for documents.
func (s *Server) Operations() *op.Set { return s.set }
