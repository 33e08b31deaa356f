import { Inject, Injectable } from '@nestjs/common'
import { SignalboxError, type Box, type ErrorCode } from 'signalbox'
import { BOX } from './inject-box.js'

/** The state of the box, in the form of the results of `@nestjs/terminus`. */
export type BoxHealth<Key extends string = string> = Record<
  Key,
  { status: 'up'; took: number } | { status: 'down'; code: ErrorCode; message: string }
>

/**
 * A health indicator for `@nestjs/terminus`, which works without that package:
 * `health.check([() => indicator.pingCheck('signalbox')])`.
 */
@Injectable()
export class SignalboxHealthIndicator {
  readonly #box: Box

  constructor(@Inject(BOX) box: Box) {
    this.#box = box
  }

  /**
   * Acquires and releases a lock that no other box uses. The result `up` has `took`, in milliseconds. The result `down`
   * has the code and message of the error, and comes after at most five seconds.
   * @param key names the result.
   */
  async pingCheck<const Key extends string>(key: Key): Promise<BoxHealth<Key>> {
    return { [key]: await this.#health() } as BoxHealth<Key>
  }

  async #health(): Promise<BoxHealth[string]> {
    try {
      return { status: 'up', took: await this.#box.ping() }
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error
      return { status: 'down', code: error.code, message: error.message }
    }
  }
}
