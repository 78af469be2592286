package console

import "slices"

// Path is where the console is.
const Path = "/console"

// Options are the options of Mount. A view whose option is missing is not there.
type Options struct {
	Version string // of the program
	Account string // path of the page where somebody adds a second factor to their account; "" for none

	Objects *Objects
	Graph   *Graph
	Live    *Live
	Workers Workers
	Users   *Users
	Mails   Mails
	System  *System
	API     *API

	Operations []Operation
}

// views returns the views in the order of the navigation.
func (c *Console) views(o Options) (all []view) {
	operations, within := c.operations(o)
	for _, v := range slices.Concat([]view{
		c.objects(o.Objects),
		c.graph(o.Graph, o.operation("verify")),
		c.live(o.Live),
		c.workers(o.Workers),
	}, operations, []view{
		c.users(o.Users),
		c.mails(o.Mails),
		c.system(o.System, o.operation(mailPath)),
		c.api(o.API),
	}) {
		if v.name != "" {
			v.routes = append(v.routes, within[v.name]...)
			all = append(all, v)
		}
	}
	return all
}
