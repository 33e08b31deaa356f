import { statSync } from 'node:fs'
import type { Clock } from '../../clock.js'
import { UnavailableError } from '../../errors.js'

/** The files are looked at again after so many milliseconds: sooner than a process could make new ones and use them. */
const LOOK_AFTER = 10

interface Original {
  readonly path: string
  readonly device: number
  readonly inode: number
}

/**
 * Files that are in use and have to stay where they are. A process that has a file open can go on using it after it was
 * deleted or moved. A process that opens the path after that makes a new file, and the two know nothing of each other.
 */
export class OriginalFiles {
  readonly #files: readonly Original[]
  readonly #clock: Clock
  #lookedAt: number
  #missing: UnavailableError | undefined

  private constructor(files: readonly Original[], clock: Clock) {
    this.#files = files
    this.#clock = clock
    this.#lookedAt = clock.now()
  }

  /** @throws when a file is not there. */
  static of(paths: readonly string[], clock: Clock): OriginalFiles {
    return new OriginalFiles(
      paths.map(path => {
        const { dev, ino } = statSync(path)
        return { path, device: dev, inode: ino }
      }),
      clock,
    )
  }

  /** @throws UnavailableError when one of the files is not the one it was; from then on each time. */
  check(): void {
    const now = this.#clock.now()
    if (now - this.#lookedAt >= LOOK_AFTER) {
      this.#lookedAt = now
      const moved = this.#files.find(file => !isOriginal(file))
      if (moved) {
        this.#missing ??= new UnavailableError(
          `${moved.path} was deleted, moved or replaced while it was in use; close the box and open it again`,
        )
      }
    }
    if (this.#missing) throw this.#missing
  }
}

function isOriginal({ path, device, inode }: Original): boolean {
  const now = statSync(path, { throwIfNoEntry: false })
  return now?.ino === inode && now.dev === device
}
