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
  /** Starts the server that it needs; gives what ends it. */
  readonly support?: (folder: string) => Promise<() => Promise<void>>
}
