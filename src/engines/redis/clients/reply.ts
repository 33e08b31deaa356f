import { RedisReplyError, type Reply } from './connection.js'

/** Returns the answer of a client package. Converts error replies to one form, the same for both packages. */
export function plain(answer: Promise<unknown>): Promise<Reply> {
  return (answer as Promise<Reply>).catch((error: unknown) => {
    throw plainError(error)
  })
}

/** Returns the time in the answer to `TIME`: milliseconds since 1970. */
export function timeOf(answer: Reply): number {
  const [seconds, micros] = answer as readonly string[]
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** An error reply of the server: a code in capitals, then a text. Errors of client packages begin differently. */
const ERROR_REPLY = /^[A-Z][A-Z0-9]+( |$)/

/** The arguments in the error for an unknown command, which may have been AUTH. */
const ARGUMENTS = /, with args beginning with:.*$/s

/**
 * Converts the rejection of a client package to a RedisReplyError if it is an error reply. Removes the arguments of the
 * command, which may be a password; ioredis keeps them with its error.
 */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === 'ReplyError' || ERROR_REPLY.test(error.message))
    return new RedisReplyError(error.message.replace(ARGUMENTS, ''))
  Reflect.deleteProperty(error, 'command')
  return error
}
