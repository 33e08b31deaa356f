import { closeSync, constants, openSync, symlinkSync, unlinkSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { UnavailableError } from '../../base/errors.js'

/** How long the path of a unix socket may be, bytes: `sun_path` without the NUL at its end. */
const LINUX_LIMIT = 107
const OTHER_LIMIT = 103
/** What the name of a socket in the folder takes at most, with the slash before it, bytes. */
const NAME = 32

/**
 * A folder for unix sockets, however long its own path is: the system takes only short paths for sockets, so a long one
 * is reached through a descriptor of the folder (Linux) or a short symbolic link to it.
 */
export class SocketFolder {
  /** The absolute path of the folder. */
  readonly path: string
  readonly #short: string
  readonly #letGo: () => void

  private constructor(path: string, short: string, letGo: () => void) {
    this.path = path
    this.#short = short
    this.#letGo = letGo
  }

  /**
   * @param folder a folder that exists.
   * @param platform decides which way a long path is made short.
   * @throws UnavailableError when the path is too long and can't be made short here; its cause says why.
   */
  static open(folder: string, platform: NodeJS.Platform = process.platform): SocketFolder {
    const path = resolve(folder)
    const longest = (platform === 'linux' ? LINUX_LIMIT : OTHER_LIMIT) - NAME
    if (Buffer.byteLength(path) <= longest) return new SocketFolder(path, path, () => {})
    try {
      return platform === 'linux' ? SocketFolder.#byDescriptor(path) : SocketFolder.#byLink(path, longest)
    } catch (cause) {
      throw new UnavailableError(
        `The path of ${path} is too long for sockets, and there was no short way to it; ` +
          `use a folder whose path has at most ${longest} bytes`,
        { cause },
      )
    }
  }

  static #byDescriptor(path: string): SocketFolder {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
    return new SocketFolder(path, `/proc/self/fd/${descriptor}`, () => closeSync(descriptor))
  }

  static #byLink(path: string, longest: number): SocketFolder {
    // A name that can't be guessed, because other users may write to this folder, too.
    const link = join(tmpdir(), `signalbox-${randomBytes(8).toString('hex')}`)
    if (Buffer.byteLength(link) > longest)
      throw new Error(`The folder for temporary files is too long: ${link}`)
    symlinkSync(path, link)
    return new SocketFolder(path, link, () => unlinkSync(link))
  }

  /** The path to bind or connect a socket of that name to: short enough, but for this process only. */
  socketPath(name: string): string {
    return `${this.#short}/${name}`
  }

  /** The path of a socket's file, for everything else. */
  filePath(name: string): string {
    return `${this.path}/${name}`
  }

  /** Gives up what made the path short. Sockets that are open stay open. */
  close(): void {
    this.#letGo()
  }
}
