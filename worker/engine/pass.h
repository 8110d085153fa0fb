// One forward pass as data: its shape, the fixed buffers it reads and writes, and the functions that write it
// as a LaunchList. The engine fills the inputs before each run or replay; a builder only writes down
// addresses.
#ifndef KVASIR_WORKER_ENGINE_PASS_H_
#define KVASIR_WORKER_ENGINE_PASS_H_

#include <cstdint>
#include <vector>

#include "common/models/model_description.h"
#include "common/plan/plan.h"
#include "worker/engine/launch.h"

namespace kvasir {

struct PassShape {
  Pass pass = Pass::kTargetDecode;
  std::int64_t requests = 1;  // padded to the bucket
  std::int64_t query_rows = 1;
  [[nodiscard]] std::int64_t rows() const { return requests * query_rows; }
};

// Metadata of one group for one pass. Two groups never share one, whatever memory they share.
struct GroupInputs {
  std::int64_t* block_table = nullptr;  // [requests, table_width], block ids
  std::int64_t table_width = 0;
  std::int64_t* slots = nullptr;   // [rows]; of a recurrent group: the state copy written after the row
  std::int64_t* bounds = nullptr;  // [rows], local tokens; 0: padding
  // Recurrent groups only.
  std::int64_t* reads = nullptr;    // [requests]: the state copy that the first row starts from
  std::int64_t* replays = nullptr;  // [requests]: rows of the ring that it takes in first
};

// A draft_block of a chain draft computes row k of all requests before row k + 1: its [rows] here and in
// PassOutputs are [query_rows, requests].
struct PassInputs {
  std::int32_t* token_ids = nullptr;  // [rows]
  std::int64_t* positions = nullptr;  // [rows]
  std::int32_t* anchors = nullptr;    // [requests]; draft_block
  double* temperatures = nullptr;     // [requests]; draft_block: 0 where the largest logit is drafted
  double* draws = nullptr;            // [rows]; draft_block: in [0, 1), one for each drafted token
  // Chain drafts: rows of PassOutputs::carries that a row starts from; [rows] in draft_context, [requests] in
  // draft_block.
  std::int32_t* previous = nullptr;
  std::int64_t* carried =
      nullptr;  // chain drafts, draft_context, [rows]: the seat that its state goes to, or -1
  std::vector<GroupInputs> groups;  // by GroupId; empty entries for groups not of this pass's role
};

struct PassOutputs {
  float* logits = nullptr;           // [rows, vocab]
  std::int32_t* next_ids = nullptr;  // [rows]: argmax of each row
  std::int32_t* drafted = nullptr;   // [requests, query_rows]; draft_block
  float* confidences = nullptr;      // [requests, query_rows]; draft_block of a draft with such a head
  float* taps = nullptr;             // [rows, taps * hidden]: written by target passes, read by draft_context
  // Chain drafts: [seats + rows, hidden], the target's state of each sequence's last committed token, by
  // seat; the taps are the rows behind.
  float* carries = nullptr;
  std::int64_t seats = 0;
  std::int32_t* fault = nullptr;  // set to 1 by an operation that met NaN or +inf
};

// Tensor parallel and context parallel place of this rank.
struct RankPlace {
  std::int64_t rank = 0;
  Topology topology;
  [[nodiscard]] std::int64_t dcp_rank() const { return rank % topology.dcp; }
};

}  // namespace kvasir

#endif  // KVASIR_WORKER_ENGINE_PASS_H_
