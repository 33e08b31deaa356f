import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Connection } from './connection.js'
import type { Model, Overview } from './model.js'

/** An action that the page asks about before it does it. */
export interface Proposal {
  readonly title: string
  /** What will be lost, by what is known now: it may change while the question is open. */
  readonly losses: (known: Pick<Shared, 'model' | 'overview'>) => readonly string[]
  readonly verb: string
  /** Does it, and returns what was done. */
  readonly act: () => Promise<string>
}

/** What all views use. */
export interface Shared {
  readonly connection: Connection
  readonly model: Model
  readonly overview: Overview
  /** The time by the clock of the server. */
  readonly now: number
  /** Asks the user about an action. */
  readonly propose: (proposal: Proposal) => void
}

/** Provides {@link Shared} to the views. */
export const SharedContext = createContext<Shared | undefined>(undefined)

/** Returns what all views use. */
export function useShared(): Shared {
  return useContext(SharedContext)!
}
