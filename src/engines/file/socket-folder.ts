import { closeSync, constants, openSync, symlinkSync, unlinkSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { UnavailableError } from '../../base/errors.js'

/** Maximum length of the path of a unix socket, in bytes: `sun_path` without the NUL at its end. */
const LINUX_LIMIT = 107
const OTHER_LIMIT = 103
/** Maximum length of the name of a socket in the folder, with the slash before it, in bytes. */
const NAME = 32

/**
 * A folder for unix sockets, with a path of any length. The system accepts only short paths for sockets, so a folder
 * with a long path is reached through a descriptor of it (Linux) or a short symbolic link to it.
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
   * @param platform decides how a long path is shortened.
   * @throws UnavailableError when the path is too long and can't be shortened here; its cause says why.
   */
  static open(folder: string, platform: NodeJS.Platform = process.platform): SocketFolder {
    const path = resolve(folder)
    const longest = (platform === 'linux' ? LINUX_LIMIT : OTHER_LIMIT) - NAME
    if (Buffer.byteLength(path) <= longest) return new SocketFolder(path, path, () => {})
    try {
      return platform === 'linux' ? SocketFolder.#byDescriptor(path) : SocketFolder.#byLink(path, longest)
    } catch (cause) {
      throw new UnavailableError(
        `the path of the folder is too long for sockets, and could not be shortened: use a folder whose path has at ` +
          `most ${longest} bytes, not ${path}`,
        { cause },
      )
    }
  }

  static #byDescriptor(path: string): SocketFolder {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
    return new SocketFolder(path, `/proc/self/fd/${descriptor}`, () => closeSync(descriptor))
  }

  static #byLink(path: string, longest: number): SocketFolder {
    // Other users may write to this folder, too, so they must not be able to guess the name.
    const link = join(tmpdir(), `signalbox-${randomBytes(8).toString('hex')}`)
    if (Buffer.byteLength(link) > longest)
      throw new Error(`the path of the folder for temporary files is too long: ${link}`)
    symlinkSync(path, link)
    return new SocketFolder(path, link, () => unlinkSync(link))
  }

  /** Returns the path for binding or connecting a socket of this name. It is short, and valid only in this process. */
  socketPath(name: string): string {
    return `${this.#short}/${name}`
  }

  /** Returns the path of a socket's file, for all other purposes. */
  filePath(name: string): string {
    return `${this.path}/${name}`
  }

  /** Closes the descriptor or removes the link that shortened the path. Open sockets stay open. */
  close(): void {
    this.#letGo()
  }
}
