import { statSync, type Stats } from 'node:fs'
import type { Clock } from '../../base/clock.js'
import { UnavailableError } from '../../base/errors.js'

/** Minimum time between two checks, in milliseconds: less than a process needs to create new files and use them. */
const CHECK_INTERVAL = 10

/** A file that must stay in place. */
export interface Original {
  readonly path: string
  readonly device: number
  readonly inode: number
}

/**
 * Files in use that must stay in place. A process that has a file open can keep using it after it was deleted or moved.
 * A process that opens the path after that creates a new file, and the two processes do not see each other's locks.
 */
export class OriginalFiles {
  /** The error that {@link check} throws from now on; undefined while no file is known to be replaced. */
  replaced: UnavailableError | undefined
  readonly #clock: Clock
  #checkedAt: number

  private constructor(
    readonly all: readonly Original[],
    clock: Clock,
  ) {
    this.#clock = clock
    this.#checkedAt = clock.now()
  }

  /** @throws when a file is missing. */
  static of(paths: readonly string[], clock: Clock): OriginalFiles {
    const files = paths.map(path => {
      const { dev, ino } = statSync(path)
      return { path, device: dev, inode: ino }
    })
    return new OriginalFiles(files, clock)
  }

  /** @throws UnavailableError once a file was deleted, moved or replaced, and at each later call. */
  check(): void {
    const now = this.#clock.now()
    if (now - this.#checkedAt >= CHECK_INTERVAL) {
      this.#checkedAt = now
      const path = replacedOf(this.all)
      if (path !== undefined) {
        this.replaced ??= new UnavailableError(
          `${path} was deleted, moved or replaced while it was in use; close the box and open it again`,
        )
      }
    }
    if (this.replaced) throw this.replaced
  }
}

/** Returns the path of the first file that was deleted, moved or replaced; undefined if there is none. */
export function replacedOf(files: readonly Original[]): string | undefined {
  return files.find(({ path, device, inode }) => {
    const now = found(path)
    return now?.ino !== inode || now.dev !== device
  })?.path
}

/** Error codes of the system for a path that leads to no file. */
const NOTHING: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'ELOOP']

/** Returns undefined when the path leads to no file. @throws all other errors of the system. */
function found(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (NOTHING.includes((error as { code?: unknown }).code)) return undefined
    throw error
  }
}
