// The object that carries the precompiled header; see precompiled.h.
