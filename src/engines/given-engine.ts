import type { Engine } from './engine.js'

/** An engine of one's own for `open`. */
export interface GivenEngine {
  /** Not joined yet: one engine for each box. */
  readonly engine: Engine
}
