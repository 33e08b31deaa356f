import { UnavailableError } from '../../base/errors.js'
import { RedisReplyError } from './clients/connection.js'
import { ConnectionLostError } from './clients/failures.js'

/**
 * Sends a call, and sends it once more if its connection is lost before the reply: the server may have closed the
 * connection long ago, while this process was frozen. The call may then have run twice.
 */
export async function sentAgain<Result>(send: (isAgain: boolean) => Promise<Result>): Promise<Result> {
  try {
    return await send(false)
  } catch (error) {
    if (!(error instanceof ConnectionLostError)) throw error
    return send(true).catch((again: unknown) => {
      // The first call may have run.
      throw again instanceof UnavailableError || again instanceof RedisReplyError ? error : again
    })
  }
}
