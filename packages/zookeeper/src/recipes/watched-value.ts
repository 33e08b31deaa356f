import type { DataAndStat } from '../calls.js'
import { ifExists } from '../settled.js'
import type { ZooKeeper } from '../zookeeper.js'
import { Observation } from './observation.js'

/**
 * The data of a node, kept up to date: a configuration that all its readers follow. While the client is suspended it is
 * what was read last. After the end of the session every use throws what ended the session, so no reader goes on with
 * data that is not followed any more.
 */
export class WatchedValue implements AsyncDisposable, AsyncIterable<DataAndStat | undefined> {
  readonly #observation: Observation<DataAndStat | undefined>

  private constructor(observation: Observation<DataAndStat | undefined>) {
    this.#observation = observation
  }

  /** Reads the node and watches it. It need not be there. @throws what `getData` throws */
  static async open(zk: ZooKeeper, path: string): Promise<WatchedValue> {
    const observation = await Observation.start<DataAndStat | undefined>(zk, {
      path,
      read: () => ifExists(zk.getData(path)),
      isSame: (one, other) => one?.stat.mzxid === other?.stat.mzxid,
    })
    return new WatchedValue(observation)
  }

  /**
   * The newest that was read; undefined when there is no node.
   * @throws SessionExpiredError, ClosedError or what else has ended it
   */
  get current(): DataAndStat | undefined {
    return this.#observation.value
  }

  /** What is there now and each change, leaving out those that are overtaken; ends when it is closed. */
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
