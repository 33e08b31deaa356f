import type { Performer, Setting } from '../processes/performer.js'

/** A lock library, open in one process. */
export interface Locker {
  /** Waits for the lock of a key for as long as it takes. */
  lock(key: string): Promise<Held>
  close(): Promise<void>
}

/** A lock that is held. */
export interface Held {
  unlock(): Promise<void>
  /** A number that rises from grant to grant, where the library gives one. */
  readonly token?: bigint
}

/** A library with locks between processes. */
export interface LockLibrary {
  readonly name: string
  /** Opens it in one process. @param folder is the same in all processes. @param keys that will be locked. */
  readonly open: (folder: string, keys: readonly string[]) => Promise<Locker>
  /** Starts the server that it needs; returns what ends it. */
  readonly support?: (folder: string) => Promise<() => Promise<void>>
}

/** Which locks the tasks of one process want. */
export interface Tasks extends Setting {
  /** One for each task, or one for all. */
  readonly keys: readonly string[]
  readonly tasks: number
  /** Whether it checks that no other client is inside. */
  readonly isGuarded: boolean
}

/** A lock library of another language, whose tasks run in a program next to each process. */
export interface ForeignLibrary {
  readonly name: string
  readonly start: (tasks: Tasks) => Promise<Performer>
  readonly support: (folder: string) => Promise<() => Promise<void>>
  /** How long it has to work before it is as fast as it gets, if that is longer than usual, in seconds. */
  readonly warmUp?: number | undefined
}
