import pytest
import torch
from torch import nn
from toy_task import toy_model

from regard.errors import ModelFormatError
from regard.training.averaging import MovingAverage, average
from regard.training.tensors import fill, finite, read_tensors, weights, write_tensors


def test_a_moving_average_follows_its_equation():
    model = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(model.weight, 1.0)
    ema = MovingAverage(model, 0.3)
    nn.init.constant_(model.weight, 2.0)
    ema.update(1, [model.weight])  # β = min(0.3, 2/11) = 2/11: 2/11 · 1 + 9/11 · 2 = 20/11
    torch.testing.assert_close(ema.means["weight"].item(), 20 / 11)
    nn.init.constant_(model.weight, 0.0)
    ema.update(50, [model.weight])  # β = 0.3
    torch.testing.assert_close(ema.means["weight"].item(), 6 / 11)


def test_a_swap_shows_the_means_and_comes_back_to_the_bit_even_after_an_error():
    model = toy_model()
    ema = MovingAverage(model, 0.9)
    means = {name: p.clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p))
    own = {name: p.clone() for name, p in model.named_parameters()}

    def look_and_fail():
        with ema.swapped():
            assert all(torch.equal(p, means[name]) for name, p in model.named_parameters())
            raise KeyError

    with pytest.raises(KeyError):
        look_and_fail()
    assert all(torch.equal(p, own[name]) for name, p in model.named_parameters())
    ema.impose()
    assert all(torch.equal(p, means[name]) for name, p in model.named_parameters())


def test_the_mean_of_files_is_that_of_their_tensors(tmp_path):
    content = [{"w": torch.randn(2, 3), "n": torch.tensor(i)} for i in range(3)]
    paths = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for path, tensors in zip(paths, content, strict=True):
        write_tensors(path, tensors)
    mean = average(paths)
    torch.testing.assert_close(mean["w"], torch.stack([c["w"] for c in content]).mean(0))
    assert mean["w"].dtype == torch.float32
    assert mean["n"] == 2
    assert torch.equal(average(paths[:1])["w"], content[0]["w"])


@pytest.mark.parametrize("other", [{"v": torch.zeros(2)}, {"w": torch.zeros(3)}, {"w": torch.zeros(2).double()}, {}])
def test_files_of_different_models_have_no_mean(tmp_path, other):
    write_tensors(tmp_path / "a", {"w": torch.zeros(2)})
    write_tensors(tmp_path / "b", other)
    with pytest.raises(ModelFormatError, match=r"tensor '[vw]'"):
        average([tmp_path / "b", tmp_path / "a"])


def test_a_tied_weight_is_stored_once_and_restored_in_both_places(tmp_path):
    def tied():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        return model

    one, other = tied(), tied()
    assert list(weights(one)) == ["0.weight", "0.bias", "1.bias"]
    write_tensors(tmp_path / "w", weights(one))
    fill(weights(other), read_tensors(tmp_path / "w"), tmp_path / "w")
    for name, tensor in one.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


def test_a_filling_that_does_not_match_copies_nothing(tmp_path):
    into = {"a": torch.zeros(2), "b": torch.zeros(2)}
    with pytest.raises(ModelFormatError, match="'b'"):
        fill(into, {"a": torch.ones(2), "b": torch.ones(3)}, tmp_path)
    assert into["a"].sum() == 0


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_one_bad_number_is_found(bad):
    tensors = {"a": torch.zeros(3), "n": torch.tensor(7), "empty": torch.zeros(0)}
    assert finite(tensors)
    assert finite({})
    tensors["b"] = torch.tensor([[0.0, bad]])
    assert not finite(tensors)


def test_a_torn_file_is_refused(tmp_path):
    (tmp_path / "w").write_bytes(b"torn")
    with pytest.raises(ModelFormatError, match="not readable as safetensors"):
        read_tensors(tmp_path / "w")
    with pytest.raises(ModelFormatError, match="not readable as safetensors"):
        read_tensors(tmp_path / "none")
