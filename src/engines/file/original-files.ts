import { statSync, type Stats } from 'node:fs'
import type { Clock } from '../../base/clock.js'
import { UnavailableError } from '../../base/errors.js'

/** How often the files are checked, in milliseconds: sooner than a process could make new ones and use them. */
const LOOK_AFTER = 10

/** A file that must stay where it is. */
export interface Original {
  readonly path: string
  readonly device: number
  readonly inode: number
}

/**
 * Files that are in use and must stay where they are. A process that has a file open can keep using it after it was
 * deleted or moved. A process that opens the path after that makes a new file, and the two do not know each other.
 */
export class OriginalFiles {
  readonly all: readonly Original[]
  readonly #clock: Clock
  #lookedAt: number
  #replaced: UnavailableError | undefined

  private constructor(files: readonly Original[], clock: Clock) {
    this.all = files
    this.#clock = clock
    this.#lookedAt = clock.now()
  }

  /** @throws when a file is missing. */
  static of(paths: readonly string[], clock: Clock): OriginalFiles {
    return new OriginalFiles(
      paths.map(path => {
        const { dev, ino } = statSync(path)
        return { path, device: dev, inode: ino }
      }),
      clock,
    )
  }

  /** What {@link check} throws from now on; undefined while no file is known to be replaced. */
  get replaced(): UnavailableError | undefined {
    return this.#replaced
  }

  /** @throws UnavailableError when one of the files is not the one it was; from then on each time. */
  check(): void {
    const now = this.#clock.now()
    if (now - this.#lookedAt >= LOOK_AFTER) {
      this.#lookedAt = now
      const path = replacedOf(this.all)
      if (path !== undefined) {
        this.#replaced ??= new UnavailableError(
          `${path} was deleted, moved or replaced while it was in use; close the box and open it again`,
        )
      }
    }
    if (this.#replaced) throw this.#replaced
  }
}

/** The path of the first file that is not the one it was; undefined when all are. */
export function replacedOf(files: readonly Original[]): string | undefined {
  return files.find(({ path, device, inode }) => {
    const now = found(path)
    return now?.ino !== inode || now.dev !== device
  })?.path
}

/** What the system says when a path leads to no file. */
const NOTHING: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'ELOOP']

/** Undefined when the path leads to no file. @throws the system's error when it can't say. */
function found(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (NOTHING.includes((error as { code?: unknown }).code)) return undefined
    throw error
  }
}
