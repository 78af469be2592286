package console

// Path is the path of the console.
const Path = "/console"

// Options are the options of Mount. A view whose option is missing does not exist.
type Options struct {
	Version string // of the program
	Account string // path of the page on which users add a second factor to their accounts; "" for none

	Objects *Objects
	Graph   *Graph
	Live    *Live
	Workers Workers
	Verify  Verifier
	Schemas *Schemas
	Users   *Users
	Mails   Mails
	System  *System
	API     *API
}

// views returns the views in the order of the navigation.
func (c *Console) views(o Options) (all []view) {
	for _, v := range []view{
		c.objects(o.Objects),
		c.graph(o.Graph, o.Verify),
		c.live(o.Live),
		c.workers(o.Workers),
		c.verify(o.Verify),
		c.schemas(o.Schemas),
		c.users(o.Users),
		c.mails(o.Mails),
		c.system(o.System),
		c.api(o.API),
	} {
		if v.name != "" {
			all = append(all, v)
		}
	}
	return all
}
