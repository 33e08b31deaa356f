import type { DataAndStat } from '../calls.js'
import { ifExists } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'

/**
 * The data of a node, kept up to date: for example a configuration that many processes follow. While the client is
 * suspended, it is the last data that was read. After the end of the session, every use throws the error that ended it,
 * so that no caller continues with data that is no longer followed.
 */
export class WatchedValue implements AsyncDisposable, AsyncIterable<DataAndStat | undefined> {
  readonly #observation: Observation<DataAndStat | undefined>

  private constructor(observation: Observation<DataAndStat | undefined>) {
    this.#observation = observation
  }

  /** Reads the node and watches it. It need not exist. @throws the errors of `getData` */
  static async open(zk: ZooKeeper, path: string): Promise<WatchedValue> {
    const observation = await Observation.start<DataAndStat | undefined>(zk, {
      path,
      read: () => ifExists(zk.getData(path)),
      isSame: (one, other) => one?.stat.mzxid === other?.stat.mzxid,
    })
    return new WatchedValue(observation)
  }

  /**
   * The newest data; undefined if the node does not exist.
   * @throws SessionExpiredError, ClosedError, or another error that ended it
   */
  get current(): DataAndStat | undefined {
    return this.#observation.value
  }

  /** Yields the current data and each change, except outdated ones; ends when it is closed. */
  [Symbol.asyncIterator](): AsyncGenerator<DataAndStat | undefined, undefined> {
    return this.#observation.readings()
  }

  /** Stops following, and ends the loops over it. */
  close(): Promise<void> {
    return this.#observation.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
