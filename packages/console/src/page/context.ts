import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Connection } from './connection.js'
import type { Model, Overview } from './model.js'

/** An action that the user must confirm. */
export interface Proposal {
  readonly title: string
  /** Returns the losses that the action will cause, as known now. They may change while the dialog is open. */
  readonly losses: (known: Pick<Shared, 'model' | 'overview'>) => readonly string[]
  readonly verb: string
  /** Executes the action, and returns a description of the result. */
  readonly act: () => Promise<string>
}

/** The state and the functions that all views use. */
export interface Shared {
  readonly connection: Connection
  readonly model: Model
  readonly overview: Overview
  /** The current time by the clock of the server. */
  readonly now: number
  /** Asks the user to confirm an action. */
  readonly propose: (proposal: Proposal) => void
}

/** Provides {@link Shared} to the views. */
export const SharedContext = createContext<Shared | undefined>(undefined)

/** Returns {@link Shared}. */
export function useShared(): Shared {
  return useContext(SharedContext)!
}
