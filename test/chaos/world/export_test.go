package world

// Models are the changes of stores and mappings that the fault of reloads makes.
var Models = models
