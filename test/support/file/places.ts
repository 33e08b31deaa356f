import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { loadSqlite, type Connection } from '../../../src/engines/file/driver.js'
import { open, type Box } from '../../../src/index.js'
import { RemoteBox, type Start } from './remote-box.js'

/** A folder for one test, with boxes on it in this process, in others and in threads. All end with the test. */
export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox-file-'))
  readonly #boxes: Box[] = []
  readonly #remote: RemoteBox[] = []
  readonly #connections: Connection[] = []

  get url(): string {
    return `file:${this.folder}`
  }

  /** Opens a connection to the database. */
  async connection(): Promise<Connection> {
    const connection = (await loadSqlite()).open(join(this.folder, 'signalbox.db'))
    this.#connections.push(connection)
    return connection
  }

  async box(query = ''): Promise<Box> {
    return this.open(this.url + query)
  }

  /** Opens a box on another URL. */
  async open(url: string): Promise<Box> {
    const box = await open(url)
    this.#boxes.push(box)
    return box
  }

  /** @param url URL of the box; default: that of the folder */
  async process(url = this.url, start?: Start): Promise<RemoteBox> {
    const box = await RemoteBox.inProcess(url, start)
    this.#remote.push(box)
    return box
  }

  async thread(): Promise<RemoteBox> {
    const box = await RemoteBox.inThread(this.url)
    this.#remote.push(box)
    return box
  }

  /** Opens a box in a worker of the cluster whose primary is this process. */
  async worker(): Promise<RemoteBox> {
    const box = await RemoteBox.inCluster(this.url)
    this.#remote.push(box)
    return box
  }

  /** Opens four boxes, each in a process of its own. */
  fourProcesses(): Promise<[RemoteBox, RemoteBox, RemoteBox, RemoteBox]> {
    return Promise.all([this.process(), this.process(), this.process(), this.process()])
  }

  async end(): Promise<void> {
    // A kill ends stopped processes, too.
    await Promise.all(this.#remote.map(box => box.kill()))
    for (const connection of this.#connections) connection.close()
    await Promise.all(this.#boxes.map(box => box.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const places: Place[] = []

/** Returns a place that ends with the current test. */
export function place(): Place {
  const made = new Place()
  places.push(made)
  return made
}

afterEach(async () => {
  for (const made of places.splice(0)) await made.end()
})
