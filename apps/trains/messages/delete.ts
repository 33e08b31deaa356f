import { locationKey } from '../domain/location.js'
import { trainKey, type Train } from '../domain/train.js'
import { name } from './field.js'
import type { Message } from './message.js'
import { ignored, type MessageType } from './message-type.js'
import { count, trainIn } from './state.js'

export interface Delete extends Message {
  readonly type: 'delete'
}

/** Deletes a train. A later message may create it again. */
export const deletion: MessageType<Delete> = {
  type: 'delete',
  fields: { train: name },
  async keys(message, read) {
    const train = (await read(trainKey(message.train))) as Train | undefined
    return train ? [trainKey(message.train), locationKey(train.location)] : [trainKey(message.train)]
  },
  handle(message, transaction) {
    const train = trainIn(transaction, message.train)
    if (!train) return ignored('no such train')
    transaction.delete(trainKey(train.id))
    count(transaction, train.location, 'deleted')
    return { event: 'deleted', details: { at: train.location } }
  },
}
