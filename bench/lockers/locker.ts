import type { Performer, Setting } from '../processes/performer.js'

/** A lock library that is open in one process. */
export interface Locker {
  /** Waits for the lock of a key without a limit. */
  lock(key: string): Promise<Held>
  close(): Promise<void>
}

/** A lock that is held. */
export interface Held {
  unlock(): Promise<void>
  /** A number that rises from grant to grant, if the library gives one. */
  readonly token?: bigint
}

/** A library of locks between processes. */
export interface LockLibrary {
  readonly name: string
  /**
   * Opens the library in one process.
   * @param folder is the same in all processes.
   * @param keys that will be locked.
   */
  readonly open: (folder: string, keys: readonly string[]) => Promise<Locker>
  /** Starts the server that the library needs. Returns a function that stops it. */
  readonly support?: (folder: string) => Promise<() => Promise<void>>
}

/** The locks that the tasks of one process want. */
export interface Tasks extends Setting {
  /** One key for each task, or one for all. */
  readonly keys: readonly string[]
  readonly tasks: number
  /** Whether to check that no other client is inside. */
  readonly isGuarded: boolean
}

/** A lock library of another language. Its tasks run in a program next to each process. */
export interface ForeignLibrary {
  readonly name: string
  readonly start: (tasks: Tasks) => Promise<Performer>
  readonly support: (folder: string) => Promise<() => Promise<void>>
  /** Time until the program reaches full speed, if that is longer than usual, in seconds. */
  readonly warmUp?: number | undefined
}
