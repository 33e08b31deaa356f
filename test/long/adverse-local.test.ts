import { file } from '../contract/file-fixture.js'
import { memory } from '../contract/memory-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(memory)
adverseSuite(file)
